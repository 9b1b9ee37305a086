// One monotonic clock that all processes of a machine share, in milliseconds.
export const nowMs = () => Number(process.hrtime.bigint()) / 1e6;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
