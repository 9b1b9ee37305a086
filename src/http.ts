export { type HttpLimits, type HttpOptions, HttpServer } from "./http/server.ts";
export type { JwtSettings } from "./runtime/jwt-settings.ts";
