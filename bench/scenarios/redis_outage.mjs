// What callers of enqueue feel while the Redis of brokered Millrace is away, and for a moment after.
import { sleep } from "../clock.mjs";
import { enqueueSteadily } from "../measure.mjs";
import { interleave } from "../rounds.mjs";
import { adapterOf } from "../systems/index.mjs";
import { system } from "./pair.mjs";

export const names = ["redis_outage"];

const perSecond = 1000;
const away = 0.8; // of the measured time; in the rest Redis is back

const outages = [
  { label: "quiet", disturb: async () => {} },
  {
    label: "Redis killed",
    async disturb({ redis }, ms) {
      await redis.kill();
      await sleep(ms * away);
      await redis.restart();
    },
  },
  {
    label: "Redis paused",
    async disturb({ redis }, ms) {
      redis.pause();
      await sleep(ms * away);
      redis.resume();
    },
  },
];

export async function run(context) {
  if (!context.systems.includes(system)) return [];
  const { modes } = await adapterOf(system);
  const config = modes.dispatch.find(({ broker }) => broker);
  const entries = outages.map(({ label, disturb }) => ({
    scenario: "redis_outage",
    system,
    config: label,
    measure: () =>
      enqueueSteadily(context.lab, system, config, context.scaled(6000), {
        perSecond,
        workers: 2,
        disturb,
      }),
  }));
  return interleave(context, entries, context.rounds);
}
