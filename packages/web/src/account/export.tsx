import { useEffect, useRef, useState } from 'preact/hooks';
import type { App } from '../state/app.ts';
import { saveFile } from '../state/save-file.ts';
import { exportConversations } from './export-conversations.ts';
import { faultText } from './faults.ts';
import { s } from './settings-text.ts';
import { SubScreen, useWork } from './sub-screen.tsx';

/** Saves the conversations that are on this device. */
export function Export({ app }: { readonly app: App }) {
  const [count, setCount] = useState(0);
  const stop = useRef<AbortController | undefined>(undefined);
  const { isBusy, run, report } = useWork();
  useEffect(() => () => stop.current?.abort(), []);
  const save = async (form: 'json' | 'text') => {
    const own = new AbortController();
    stop.current = own;
    setCount(0);
    const work = async () => {
      const { signal } = own;
      const made = await exportConversations(app.account, { form, signal, progress: setCount });
      saveFile(made.file);
      app.notice.value = s.exported(made.count);
    };
    await run(s.exporting, work, {
      words: (error) => (own.signal.aborted ? '' : faultText(error)),
    });
  };
  return (
    <SubScreen title={s.exporting}>
      <p>{s.exportText}</p>
      <div class="row">
        <button type="button" disabled={isBusy} onClick={() => void save('json')}>
          {s.asJson}
        </button>
        <button type="button" disabled={isBusy} onClick={() => void save('text')}>
          {s.asText}
        </button>
      </div>
      {isBusy && (
        <p>
          {s.reading(count)}{' '}
          <button type="button" class="plain" onClick={() => stop.current?.abort()}>
            {s.stop}
          </button>
        </p>
      )}
      {report}
    </SubScreen>
  );
}
