export { MetricsServer, type MetricsServerOptions } from "./http/metrics-server.ts";
export { type HttpLimits, type HttpOptions, HttpServer } from "./http/server.ts";
export type { JwtSettings } from "./runtime/jwt-settings.ts";
