// A line chart of minutes. uPlot draws on a canvas; the legend, and what a reader hears, are ours.

import { useEffect, useRef, useState } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useThemeChanges } from "../shell/theme.ts";
import { short } from "./words.ts";

export interface Line {
  readonly label: string;
  /** null: there was nothing to count. */
  readonly values: readonly (number | null)[];
  readonly colour: "--accent" | "--chart-2" | "--warn" | "--bad";
  readonly isFilled?: boolean;
  /** Of two lines that cover each other both are seen. */
  readonly isDashed?: boolean;
}

interface ChartProps {
  readonly label: string;
  readonly times: readonly string[];
  readonly lines: readonly Line[];
  readonly height?: number;
}

const hourMinute = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

/** Jobs are counted by ones: 1, 2, 5, 10 … */
const wholeSteps = Array.from({ length: 10 }, (_, i) => [1, 2, 5].map((n) => n * 10 ** i)).flat();

function optionsOf(
  lines: readonly Line[],
  size: { width: number; height: number },
  onMove: (index: number | null) => void,
): UPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: colour("--soft"),
    font: `11px ${style.getPropertyValue("--font")}`,
    ticks: { show: false },
  };
  return {
    ...size,
    legend: { show: false },
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
    padding: [8, 20, 0, 0],
    scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.15)] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 70,
        size: 26,
        values: (_, splits) => splits.map((at) => hourMinute.format(at * 1_000)),
      },
      {
        ...axis,
        size: 44,
        space: 34,
        incrs: wholeSteps,
        grid: { stroke: colour("--line"), width: 1 },
        values: (_, splits) => splits.map(short),
      },
    ],
    series: [
      {},
      ...lines.map((line) => ({
        label: line.label,
        stroke: colour(line.colour),
        width: 1.75,
        // Of one or two minutes there is no line to see.
        points: { show: (plot: UPlot, index: number) => isSparse(plot.data[index]), size: 6 },
        ...(line.isDashed ? { dash: [5, 4] } : {}),
        ...(line.isFilled ? { fill: `${colour(line.colour)}22` } : {}),
      })),
    ],
    hooks: { setCursor: [(plot) => onMove(plot.cursor.idx ?? null)] },
  };
}

const shownAt = ({ values }: Line, at: number): string => {
  const value = values[at] ?? null;
  return value === null ? "–" : short(value);
};

/** The first minute with data, where it is not the first one drawn. */
function beginOf(times: readonly string[], lines: readonly Line[]): string | undefined {
  const first = lines[0]?.values.findIndex((value) => value !== null) ?? 0;
  const at = first === -1 ? undefined : times[first];
  return first > 0 && at !== undefined ? hourMinute.format(new Date(at)) : undefined;
}

const isSparse = (values: ArrayLike<unknown> | undefined): boolean =>
  Array.from(values ?? []).filter((value) => value !== null && value !== undefined).length < 3;

export function Chart({ label, times, lines, height = 190 }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const [index, setIndex] = useState<number | null>(null);
  const theme = useThemeChanges();
  const shape = lines.map((line) => line.label).join();

  // biome-ignore lint/correctness/useExhaustiveDependencies: values are handed over below, without a new plot
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const size = { width: element.clientWidth || 300, height };
    const drawn = new UPlot(optionsOf(lines, size, setIndex), [[]], element);
    plot.current = drawn;
    const resized = new ResizeObserver(() =>
      drawn.setSize({ width: element.clientWidth || 300, height }),
    );
    resized.observe(element);
    return () => {
      resized.disconnect();
      drawn.destroy();
      plot.current = null;
    };
  }, [theme, shape, height]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new plot wants the values, too
  useEffect(() => {
    const seconds = times.map((at) => Date.parse(at) / 1_000);
    plot.current?.setData([seconds, ...lines.map(({ values }) => [...values])]);
  }, [times, lines, theme, shape]);

  const at = index ?? times.length - 1;
  const begins = beginOf(times, lines);
  return (
    <figure className="chart">
      <ul className="legend">
        {lines.map((line) => (
          <li key={line.label}>
            <i data-colour={line.colour} data-dashed={line.isDashed === true} aria-hidden="true" />
            {line.label} <b>{shownAt(line, at)}</b>
          </li>
        ))}
        <li>{times[at] === undefined ? "" : hourMinute.format(new Date(times[at]))}</li>
        {begins === undefined ? null : <li>no data before {begins}</li>}
      </ul>
      <div ref={box} className="plot" role="img" aria-label={label} />
    </figure>
  );
}
