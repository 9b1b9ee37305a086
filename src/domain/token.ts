/** Granted once and never again: a claim's random id and the job's own counter of claims. */
export interface Token {
  readonly claimId: string;
  readonly claimNo: number;
}

export const tokenText = (token: Token): string => `${token.claimId}/${token.claimNo}`;
