import { isClientError } from '@posthouse/client/web';
import { useState } from 'preact/hooks';
import { loadCryptography } from '../engine/load-part.ts';
import { Field } from '../parts/controls.tsx';
import type { App } from '../state/app.ts';
import { text } from '../text/index.ts';
import { walletFault } from './account-key.tsx';
import { r } from './restore-text.ts';
import { useWork } from './sub-screen.tsx';

/** Sets this device up with the key in a backup; recovers the account if nothing else of it is left. */
export function Restore({ app, code }: { readonly app: App; readonly code: string }) {
  const [password, setPassword] = useState('');
  const [file, setFile] = useState<File | undefined>();
  /** Whether the account's relay gave no answer. */
  const [isLost, setLost] = useState(false);
  const [isSure, setSure] = useState(false);
  const { isBusy, run, report } = useWork();
  const restore = async (recover: boolean) => {
    if (file === undefined) return;
    const work = async () => {
      const { openBackup } = await loadCryptography();
      const accountKey = await openBackup(app.config, file, password);
      try {
        await app.setUp({ inviteCode: code, accountKey, recover });
        app.backedUp();
      } catch (error) {
        const isGone = ['relay_unreachable', 'no_relay'] as const;
        setLost(navigator.onLine && isGone.some((each) => isClientError(error, each)));
        throw error;
      }
    };
    await run(recover ? r.recovering : text.restoring, work, { words: walletFault });
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void restore(false);
      }}
    >
      <p class="field">
        <label for="backup-file">{text.backupFile}</label>
        <input
          id="backup-file"
          type="file"
          required
          accept=".json,application/json"
          onChange={({ currentTarget }) => setFile(currentTarget.files?.[0])}
        />
      </p>
      <Field
        {...{ label: text.password, value: password, onValue: setPassword, type: 'password' }}
        autoComplete="current-password"
        required
      />
      <button type="submit" disabled={isBusy}>
        {text.openBackup}
      </button>
      {report}
      {isLost && (
        <section class="box" aria-labelledby="lost">
          <h2 id="lost">{r.lost}</h2>
          <p>{r.lostText}</p>
          <p class="fault">{r.warning}</p>
          <p>
            <label>
              <input
                type="checkbox"
                checked={isSure}
                onChange={({ currentTarget }) => setSure(currentTarget.checked)}
              />{' '}
              {r.sure}
            </label>
          </p>
          <button
            type="button"
            class="danger"
            disabled={!isSure || isBusy}
            onClick={() => void restore(true)}
          >
            {r.recover}
          </button>
        </section>
      )}
    </form>
  );
}
