import { useEffect, useState } from 'preact/hooks';
import { show } from '../router.ts';
import type { App } from '../state/app.ts';
import { ending } from '../state/ending.ts';
import { eraseDevice } from './erase-device.ts';
import { faultText } from './faults.ts';
import { l } from './lock-text.ts';
import { s } from './settings-text.ts';
import { SubScreen, Sure, useWork } from './sub-screen.tsx';

/** Deletes this device: from the account if that is possible, and then from the browser. */
export function Erase({ app }: { readonly app: App }) {
  const [hasKey, setHasKey] = useState(false);
  const [removes, setRemoves] = useState(true);
  const { isBusy, run, report } = useWork();
  useEffect(() => {
    // A device that is not served any more cannot remove itself.
    if (ending.value !== '') return;
    app.client.accountKey().then(
      (key) => {
        setHasKey(key !== undefined);
        key?.fill(0);
      },
      () => undefined,
    );
  }, []);
  const erase = async () => {
    if (hasKey && removes) {
      const { deviceId, devices } = app.account;
      const words = (error: unknown) => s.notRemoved(faultText(error));
      // Contacts are not told by a device that ends: another one tells them.
      const remove = () => devices.remove(deviceId, { force: true });
      if (!(await run(s.erasing, remove, { words }))) return setRemoves(false);
    }
    await app.endWith((say) => eraseDevice(() => say(l.otherTabs)));
  };
  return (
    <SubScreen title={s.erase}>
      <p>{s.eraseText}</p>
      <div class="row">
        <button type="button" onClick={() => show({ screen: 'backup' })}>
          {s.backupFirst}
        </button>
        <button
          type="button"
          class="plain"
          onClick={() => show({ screen: 'settings', page: 'export' })}
        >
          {s.exportFirst}
        </button>
      </div>
      {hasKey ? (
        <p>
          <label>
            <input
              type="checkbox"
              checked={removes}
              onChange={({ currentTarget }) => setRemoves(currentTarget.checked)}
            />{' '}
            {s.alsoRemove}
          </label>
        </p>
      ) : (
        ending.value === '' && <p>{s.cannotRemove}</p>
      )}
      <Sure {...{ label: s.eraseNow, sure: s.sure, isBusy, work: erase }} />
      {report}
    </SubScreen>
  );
}
