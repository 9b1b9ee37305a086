interface FoundImport {
  readonly specifier: string;
  readonly kind: "static" | "dynamic" | "type";
  readonly line: number;
  readonly target: string | null;
}
export function readImportGraph(root: string, folder: string): Map<string, FoundImport[]>;
