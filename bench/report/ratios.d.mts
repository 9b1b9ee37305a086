export interface Ratio {
  readonly what: string;
  readonly ratio: number;
  readonly wanted: string;
  readonly met: boolean | null;
}

export function ratiosOf(rows: readonly object[]): Ratio[];
