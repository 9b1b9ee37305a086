import { test } from "vitest";
import { survivesFuzz } from "../support/fuzz.ts";
import { useHttp } from "../support/http.ts";

const http = useHttp();

test("1,000 malformed requests get answers below 500, and the server lives on", async () => {
  await survivesFuzz(http, 1_000, 1);
});
