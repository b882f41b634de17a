/** Texts that go from one screen to another: shown as a code, and read again. */
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Handout } from '../parts/controls.tsx';
import { later } from '../parts/later.tsx';
import { saveFile } from '../state/save-file.ts';
import { canScan, readPicture, scanCamera } from './scan.ts';
import { t } from './text.ts';

const Qr = later(async () => (await import('./qr.tsx')).Qr, true);

/** Bytes of a text that is read, at most. */
const mostBytes = 65_536;

/** A text for another device: as a QR code, as text, and as a file. */
export function Carry({
  value,
  label,
  file,
}: {
  readonly value: string;
  readonly label: string;
  readonly file?: string;
}) {
  return (
    <div class="carry">
      <Qr {...{ value, label }} />
      <Handout value={value} title={label} />
      {file !== undefined && (
        <button
          type="button"
          class="plain"
          onClick={() =>
            saveFile({ name: file, content: new Blob([value], { type: 'application/json' }) })
          }
        >
          {t.saveFile}
        </button>
      )}
    </div>
  );
}

/** Takes a text from another device: by camera, pasted, from a file, or from a picture of the code. */
export function Take({
  label,
  onText,
}: {
  readonly label: string;
  readonly onText: (text: string) => Promise<void>;
}) {
  const id = useId();
  const video = useRef<HTMLVideoElement>(null);
  const [stop, setStop] = useState<AbortController | undefined>();
  const [pasted, setPasted] = useState('');
  const [fault, setFault] = useState('');
  useEffect(() => () => stop?.abort(), [stop]);
  useEffect(() => {
    if (stop === undefined || video.current === null) return;
    const { signal } = stop;
    const scan = async (element: HTMLVideoElement) => {
      try {
        const found = await scanCamera(element, signal);
        if (found !== undefined && !signal.aborted) await onText(found);
      } catch {
        setFault(t.noCamera);
      } finally {
        setStop(undefined);
      }
    };
    void scan(video.current);
  }, [stop]);
  const open = async (file: File | undefined) => {
    setFault('');
    if (file === undefined) return;
    if (!file.type.startsWith('image/')) return await onText(await file.slice(0, mostBytes).text());
    if (!canScan) return setFault(t.noScan);
    const found = await readPicture(file).catch(() => undefined);
    if (found === undefined) setFault(t.noQr);
    else await onText(found);
  };
  return (
    <form
      class="take"
      aria-label={label}
      onSubmit={(event) => {
        event.preventDefault();
        void onText(pasted.slice(0, mostBytes).trim());
      }}
    >
      {canScan && stop === undefined && (
        <button type="button" onClick={() => setStop(new AbortController())}>
          {t.scan}
        </button>
      )}
      {stop !== undefined && (
        <>
          <video ref={video} aria-label={t.camera} muted playsInline />
          <button type="button" onClick={() => stop.abort()}>
            {t.stopScan}
          </button>
        </>
      )}
      <p class="field">
        <label for={`${id}-text`}>{canScan ? t.paste : label}</label>
        <textarea
          id={`${id}-text`}
          rows={3}
          value={pasted}
          onInput={({ currentTarget }) => setPasted(currentTarget.value)}
        />
      </p>
      <button type="submit" disabled={pasted.trim() === ''}>
        {t.next}
      </button>
      <p class="field">
        <label for={`${id}-file`}>{t.openFile}</label>
        <input
          id={`${id}-file`}
          type="file"
          accept=".json,.txt,application/json,text/plain,image/*"
          onChange={({ currentTarget }) => void open(currentTarget.files?.[0])}
        />
      </p>
      <p role="alert" class="fault">
        {fault}
      </p>
    </form>
  );
}

/** An ID in groups that can be compared by eye. */
export function DeviceId({ id }: { readonly id: string }) {
  const groups = id.replace(/^dev_/, '').match(/.{1,4}/g) ?? [];
  return (
    <p class="compare">
      <code>{groups.join(' ')}</code>
    </p>
  );
}
