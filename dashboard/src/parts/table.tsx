// Every table of the dashboard: columns that may be sorted, and a frame that scrolls by itself.

import {
  type CellData,
  createSortedRowModel,
  type RowData,
  rowSortingFeature,
  sortFns,
  tableFeatures,
  useTable,
} from "@tanstack/react-table";
import { type ReactNode, useMemo } from "react";

export interface Column<T> {
  readonly id: string;
  readonly header: string;
  readonly cell: (row: T) => ReactNode;
  /** What it is sorted by; without it, it is not. */
  readonly sort?: (row: T) => string | number;
  readonly align?: "end";
  /** Left out on narrow screens. */
  readonly wide?: boolean;
}

interface TableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  readonly empty: ReactNode;
  /** As it stands in the address: a column's id, with a minus for the largest first. */
  readonly sort?: string | undefined;
  readonly onSort?: (sort: string) => void;
}

const features = tableFeatures({
  rowSortingFeature,
  sortedRowModel: createSortedRowModel(),
  sortFns,
});

export function Table<T extends RowData>(props: TableProps<T>) {
  const { label, columns, rows, keyOf, empty, sort, onSort } = props;
  const byId = useMemo(() => new Map(columns.map((column) => [column.id, column])), [columns]);
  const definitions = useMemo(
    () =>
      columns.map(({ id, sort: by }) => ({
        id,
        accessorFn: (row: T): CellData => by?.(row) ?? 0,
        enableSorting: by !== undefined,
        sortFn: "auto" as const,
      })),
    [columns],
  );
  const sorting = useMemo(
    () => (sort ? [{ id: sort.replace(/^-/, ""), desc: sort.startsWith("-") }] : []),
    [sort],
  );
  const table = useTable({
    ...{ features, columns: definitions, data: rows as T[], state: { sorting } },
    getRowId: keyOf,
  });
  if (rows.length === 0) return empty;
  const next = (id: string) => (sort === `-${id}` ? id : `-${id}`);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="scroll" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <Header
                key={column.id}
                column={column as Column<never>}
                sort={sort}
                onSort={onSort && (() => onSort(next(column.id)))}
              />
            ))}
          </tr>
        </thead>
        <tbody>
          {table.getRowModel().rows.map((row) => (
            <tr key={row.id}>
              {row.getAllCells().map(({ column: { id } }) => (
                <td
                  key={id}
                  className={classOf(byId.get(id))}
                  data-label={byId.get(id)?.header ?? ""}
                >
                  {byId.get(id)?.cell(row.original)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const classOf = (column: { align?: "end"; wide?: boolean } | undefined): string =>
  [column?.align ?? "", column?.wide === true ? "wide" : ""].join(" ").trim();

function Header(props: {
  readonly column: Column<never>;
  readonly sort: string | undefined;
  readonly onSort: (() => void) | undefined;
}) {
  const { column, sort, onSort } = props;
  const isSorted = sort?.replace(/^-/, "") === column.id;
  const direction = sort?.startsWith("-") ? "descending" : "ascending";
  return (
    <th
      scope="col"
      className={classOf(column)}
      {...(isSorted ? { "aria-sort": direction as "descending" | "ascending" } : {})}
    >
      {onSort === undefined || column.sort === undefined ? (
        column.header
      ) : (
        <button type="button" onClick={onSort}>
          {column.header}
          {isSorted ? <span aria-hidden="true">{sort?.startsWith("-") ? "↓" : "↑"}</span> : null}
        </button>
      )}
    </th>
  );
}
