/** A field of the payload that the job can be found by. */
export interface Label {
  readonly name: string;
  readonly value: string;
}
