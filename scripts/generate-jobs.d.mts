export interface GenerateOptions {
  readonly url: string;
  readonly jobs: number;
  readonly schema?: string;
  readonly onProgress?: (done: number, jobs: number) => void;
}

export function generateJobs(
  options: GenerateOptions,
): Promise<Record<"history" | "ready" | "delayed" | "dead", number>>;
