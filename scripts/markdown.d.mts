export interface FencedBlock {
  readonly line: number;
  readonly language: string;
  /** The file in which the reader should keep the block. */
  readonly saveAs: string | null;
  readonly text: string;
}

export function fencedBlocks(markdown: string): FencedBlock[];
