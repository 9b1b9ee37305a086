// What the general way in stores about a job's place and count, beside the rest.

import { countTenants } from "./tenant-count.ts";

export interface PlaceParts {
  readonly name: string;
  readonly rows: string;
  readonly names: string;
  readonly columns: string;
  readonly counted: string;
}

export const withoutLanes: PlaceParts = { name: "", rows: "", names: "", columns: "", counted: "" };
export const withLanes: PlaceParts = {
  name: "_lanes",
  rows: ", unnest($21::text::int[]), unnest($22::text::int[])",
  names: "tenant_slot, lane, ",
  columns: ", tenant_slot, lane",
  counted: "",
};
export const withCounts: PlaceParts = {
  ...withLanes,
  name: "_counted",
  counted: `
  tenants_counted as (${countTenants("accepted", "+", "coalesce($2::text::uuid, gen_random_uuid())")}),`,
};
