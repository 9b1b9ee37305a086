export { type HttpLimits, type HttpOptions, HttpServer } from "./http/server.ts";
