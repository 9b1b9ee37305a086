import { type FormEvent, useState } from "react";
import type { Erasure, Tenant } from "../api/agreed.ts";
import { send } from "../api/service.ts";
import { useActions } from "../parts/actions.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { FormEnd } from "../parts/form-end.tsx";
import { number } from "../parts/words.ts";

const pathOf = ({ tenant_id }: Tenant) => `/api/tenants/${encodeURIComponent(tenant_id)}`;

export function TenantDialog({ tenant, onClose }: { tenant: Tenant; onClose: () => void }) {
  const { say, refresh } = useActions();
  const [problem, setProblem] = useState<unknown>(null);
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const limit = String(form.get("limit") ?? "").trim();
    const seconds = Number(form.get("seconds") ?? 60);
    const body = {
      weight: Number(form.get("weight")),
      rate_limit: limit === "" ? null : { limit: Number(limit), window_ms: seconds * 1_000 },
    };
    try {
      await send("PUT", pathOf(tenant), body);
      say(`${tenant.tenant_id} is changed.`);
      onClose();
      await refresh();
    } catch (error) {
      setProblem(error);
    }
  };
  const { rate_limit } = tenant;
  return (
    <Dialog title={`Limits of ${tenant.tenant_id}`} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void save(event)}>
        <label>
          Share: jobs per turn beside other tenants
          <input
            name="weight"
            type="number"
            min={1}
            max={100}
            required
            defaultValue={tenant.weight}
          />
        </label>
        <div className="fields">
          <label>
            May enqueue
            <input
              name="limit"
              type="number"
              min={1}
              placeholder="without limit"
              defaultValue={rate_limit?.limit ?? ""}
            />
          </label>
          <label>
            in so many seconds
            <input
              name="seconds"
              type="number"
              min={1}
              max={86_400}
              defaultValue={(rate_limit?.window_ms ?? 60_000) / 1_000}
            />
          </label>
        </div>
        <FormEnd problem={problem} action="Save" onClose={onClose} />
      </form>
    </Dialog>
  );
}

/** Each call erases a part; it is called until nothing is left. */
async function erase(tenant: Tenant, notes: string): Promise<number> {
  let erased = 0;
  let cursor: string | undefined;
  for (;;) {
    const query = { confirm: tenant.tenant_id, notes, cursor };
    const part = await send<Erasure>("DELETE", pathOf(tenant), {}, query);
    erased += Object.values(part.erased).reduce((a, b) => a + b, 0);
    if (part.done) return erased;
    cursor = part.next_cursor ?? undefined;
  }
}

export function EraseButton({ tenant }: { tenant: Tenant }) {
  const { confirm, say, refresh } = useActions();
  const { tenant_id } = tenant;
  const ask = () =>
    confirm({
      title: `Erase ${tenant_id}?`,
      text: (
        <p>
          Its triggers and what waits are deleted, and payloads, results, errors, references and
          keys are taken out of all that has ended. The audit trail stays. Revoke its keys first. It
          cannot be undone.
        </p>
      ),
      ...{ action: "Erase", isDangerous: true, reason: "required", typed: tenant_id },
      run: async (notes) => {
        say(`${number(await erase(tenant, notes))} jobs of ${tenant_id} are erased.`);
        await refresh();
      },
    });
  return (
    <button type="button" className="quiet" aria-label={`Erase ${tenant_id}`} onClick={ask}>
      Erase…
    </button>
  );
}
