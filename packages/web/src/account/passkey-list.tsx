import { visibleText } from '@posthouse/client/visible-text';
import type { PasskeyDocument } from '@posthouse/client/web/passkey';
import { loadCryptography } from '../engine/load-part.ts';
import { k } from './key-passkey-text.ts';
import { forgetPasskey, keptPasskeys } from './key-passkeys.ts';
import { Ask, useWork } from './sub-screen.tsx';

/** The passkeys that open the account key on this device. */
export function PasskeyList({ account }: { readonly account: string }) {
  const { isBusy, run, report } = useWork();
  const passkeys = keptPasskeys(account);
  const remove = async (one: PasskeyDocument) => {
    const work = async () => {
      const { removePasskey } = await loadCryptography();
      await removePasskey([one], one);
      forgetPasskey(one);
    };
    await run(k.removing, work, { say: k.removed });
    // The button is gone.
    document.querySelector<HTMLElement>('main h1')?.focus();
  };
  // The place of the report stays: what it says last is announced.
  if (passkeys.length === 0) return <div>{report}</div>;
  return (
    <section class="box" aria-label={k.title}>
      <h2>{k.title}</h2>
      <p>{k.about}</p>
      <ul class="devices">
        {passkeys.map((one, index) => (
          <li key={one.credential_id}>
            <p>{k.item(index + 1, visibleText(one.rp_id))}</p>
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
