import type { PasskeyDocument } from '@posthouse/client/web/passkey';
import { loadCryptography } from '../engine/load-part.ts';
import { k } from './key-passkey-text.ts';
import { keepPasskeys, keptPasskeys } from './key-passkeys.ts';
import { Ask, useWork } from './sub-screen.tsx';

/** The passkeys that open the account key on this device. */
export function PasskeyList({ account }: { readonly account: string }) {
  const { isBusy, run, report } = useWork();
  const passkeys = keptPasskeys(account);
  const remove = (one: PasskeyDocument) =>
    run(
      k.remove,
      async () => {
        const { removePasskey } = await loadCryptography();
        keepPasskeys(await removePasskey(keptPasskeys(account), one));
      },
      { say: k.removed },
    );
  if (passkeys.length === 0) return report;
  return (
    <section class="box" aria-label={k.title}>
      <h2>{k.title}</h2>
      <p>{k.about}</p>
      <ul class="devices">
        {passkeys.map((one, index) => (
          <li key={one.credential_id}>
            <p>{k.item(index + 1, String(one.rp_id))}</p>
            <Ask label={k.remove} question={k.question}>
              <button
                type="button"
                class="danger"
                disabled={isBusy}
                onClick={() => void remove(one)}
              >
                {k.removeNow}
              </button>
            </Ask>
          </li>
        ))}
      </ul>
      {report}
    </section>
  );
}
