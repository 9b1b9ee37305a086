// The dashboard as people use it: the built files, the real service, a real browser. One of each for all.

import { describe } from "vitest";
import { useDashboard } from "../support/dashboard.ts";
import { accessibilitySuite } from "./accessibility.ts";
import { controlsSuite } from "./controls.ts";
import { deadLettersSuite } from "./dead-letters.ts";
import { injectionSuite } from "./injection.ts";
import { jobsSuite } from "./jobs.ts";
import { keyboardSuite } from "./keyboard.ts";
import { liveSuite } from "./live.ts";
import { ratesSuite } from "./rates.ts";
import { signInSuite } from "./sign-in.ts";
import { tenantsSuite } from "./tenants.ts";

describe("the dashboard", () => {
  const dashboard = useDashboard();
  describe("before anything has happened", () => accessibilitySuite(dashboard).emptySuite());
  describe("signing in", () => signInSuite(dashboard));
  describe("jobs", () => jobsSuite(dashboard));
  describe("dead letters", () => deadLettersSuite(dashboard));
  describe("controls", () => controlsSuite(dashboard));
  describe("tenants and keys", () => tenantsSuite(dashboard));
  describe("live updates", () => liveSuite(dashboard));
  describe("rates", () => ratesSuite(dashboard));
  describe("keyboard", () => keyboardSuite(dashboard));
  describe("accessibility", () => accessibilitySuite(dashboard).pagesSuite());
  describe("security 11: hostile text", () => injectionSuite(dashboard));
});
