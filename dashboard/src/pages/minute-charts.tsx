// What happened minute by minute, of all queues or of one.

import { useMemo } from "react";
import type { Statistics } from "../api/answers.ts";
import { Chart, type Line } from "../parts/chart.tsx";
import { Panel } from "../parts/page.tsx";
import { drawnMinutes } from "../parts/rates.ts";

type Counts = Omit<Statistics["series"][number], "at">;
type Drawing = Omit<Line, "values"> & { readonly of: keyof Counts };

const throughput: readonly Drawing[] = [
  { of: "completed", label: "Completed", colour: "--accent", isFilled: true },
  { of: "enqueued", label: "Enqueued", colour: "--chart-2", isDashed: true },
];
const failures: readonly Drawing[] = [
  { of: "retried", label: "Tried again", colour: "--warn", isFilled: true },
  { of: "dead", label: "Dead", colour: "--bad" },
];

export function MinuteCharts({ statistics }: { statistics: Statistics }) {
  const drawn = useMemo(() => drawnMinutes(statistics), [statistics]);
  return (
    <div className="split">
      <Minutes
        title="Throughput, minute by minute"
        label="Jobs completed and enqueued in each minute of the last hour"
        drawings={throughput}
        {...drawn}
      />
      <Minutes
        title="Failures, minute by minute"
        label="Runs that failed in each minute of the last hour"
        drawings={failures}
        {...drawn}
      />
    </div>
  );
}

function Minutes(props: {
  readonly title: string;
  readonly label: string;
  readonly drawings: readonly Drawing[];
  readonly minutes: Statistics["series"];
  readonly unknown: number;
}) {
  const { title, label, drawings, minutes, unknown } = props;
  const times = useMemo(() => minutes.map(({ at }) => at), [minutes]);
  const lines = useMemo(
    () =>
      drawings.map(({ of, ...line }) => ({
        ...line,
        values: minutes.map((minute, i) => (i < unknown ? null : minute[of])),
      })),
    [drawings, minutes, unknown],
  );
  const isTooYoung = unknown === minutes.length;
  return (
    <Panel title={title}>
      {isTooYoung ? (
        <p className="soft">The first minute is not over yet.</p>
      ) : (
        <Chart {...{ label, times, lines }} />
      )}
    </Panel>
  );
}
