// What a job is called, which queue it waits in, and what running it means.
import { defineJob } from "millrace";

export const greet = defineJob({
  type: "greet",
  queue: "greetings",
  async run({ payload, attempt }) {
    // The first try of every third greeting fails, so that you can see a retry.
    if (payload.n % 3 === 0 && attempt === 1) throw new Error("The line was busy.");
    console.log(`Hello, ${payload.name}! (attempt ${attempt})`);
    return { greeted: payload.name };
  },
});
