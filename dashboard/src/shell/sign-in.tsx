import { type FormEvent, useEffect, useState } from "react";
import { codeOf, messageOf } from "../api/service.ts";
import { Command } from "../parts/marks.tsx";
import { Logo } from "./logo.tsx";
import { type Nobody, useSignIn } from "./session.ts";

const reasons: Readonly<Record<Nobody["nobody"], string | null>> = {
  new: null,
  link: "This link was used, or has expired: it signs in once, within ten minutes. Paste the key that was printed with it, or start millrace dev again for a new link.",
  ended:
    "The session has ended. If the service was started again, millrace dev has printed a new link and a new key.",
  left: "You are signed out.",
};

export function SignIn({ why }: { why: Nobody["nobody"] }) {
  const signIn = useSignIn();
  const [key, setKey] = useState("");
  const [problem, setProblem] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    document.title = "Sign in · Millrace";
  }, []);

  async function submit(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await signIn(key.trim());
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  }

  return (
    <main className="sign-in">
      <form onSubmit={submit}>
        <h1 className="brand">
          <Logo /> Millrace
        </h1>
        {reasons[why] === null ? null : (
          <div className="note-box" data-tone={why === "left" ? "good" : "warn"} role="status">
            {reasons[why]}
          </div>
        )}
        <label>
          API key
          <input
            type="password"
            name="key"
            autoComplete="current-password"
            // biome-ignore lint/a11y/noAutofocus: the one field of a page that is for nothing else
            autoFocus
            required
            value={key}
            onChange={(event) => setKey(event.target.value)}
          />
        </label>
        {problem === null ? null : (
          <div className="note-box" data-tone="bad" role="alert">
            {codeOf(problem) === "UNAUTHENTICATED"
              ? "This key is not known here, or not any more."
              : messageOf(problem)}
          </div>
        )}
        <button type="submit" className="primary" disabled={isBusy || key.trim() === ""}>
          {isBusy ? "Signing in…" : "Sign in"}
        </button>
        <p className="soft">
          <code>npx millrace dev</code> prints a key when it starts. Beside any other service, make
          one:
        </p>
        <Command text="npx millrace keys create --name you --role manager" />
        <p className="soft">
          The key is exchanged for a session that scripts cannot read, and is not kept.
        </p>
      </form>
    </main>
  );
}
