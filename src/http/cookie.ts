// The one cookie: the id of a session. Scripts cannot read it, and other sites cannot send it.

const idShape = /^[A-Za-z0-9_-]{43}$/;

/** With TLS the browser itself refuses one that another host of the domain made. */
const nameOf = (isSecure: boolean): string =>
  isSecure ? "__Host-millrace_session" : "millrace_session";

/** Of two, one may have been planted: then neither counts. */
export function sessionIdIn(header: string, isSecure: boolean): string | undefined {
  const prefix = `${nameOf(isSecure)}=`;
  const found = header
    .split(";")
    .map((part) => part.trim())
    .filter((part) => part.startsWith(prefix));
  const id = found[0]?.slice(prefix.length);
  return found.length === 1 && id !== undefined && idShape.test(id) ? id : undefined;
}

export function sessionCookie(id: string, maxAgeSeconds: number, isSecure: boolean): string {
  const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict`;
  return `${nameOf(isSecure)}=${id}; ${attributes}${isSecure ? "; Secure" : ""}`;
}

export const noSessionCookie = (isSecure: boolean): string => sessionCookie("", 0, isSecure);
