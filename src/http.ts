// Node's types are asked for here: TypeScript 6 and newer look for none by themselves.
/// <reference types="node" preserve="true" />

export { MetricsServer, type MetricsServerOptions } from "./http/metrics-server.ts";
export { type HttpLimits, type HttpOptions, HttpServer } from "./http/server.ts";
export type { JwtSettings } from "./runtime/jwt-settings.ts";
