import { previewKind } from '@posthouse/client';
import { isClientError } from '@posthouse/client/web';
import type { ContentReference } from '@posthouse/protocol';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { App } from '../state/app.ts';
import { saveFile } from '../state/save-file.ts';
import { text } from '../text/index.ts';
import { sizeText, t } from './text.ts';

/** Attachments of a message that are shown at once; a stranger may name many. */
const shownAtOnce = 10;

/** The attachments of a message. Nothing is downloaded before the person wants it (04 §10). */
export function Attached({
  app,
  attachments,
}: {
  readonly app: App;
  readonly attachments: readonly ContentReference[];
}) {
  const [shown, setShown] = useState(shownAtOnce);
  const left = attachments.length - shown;
  return (
    <ul class="attached">
      {attachments.slice(0, shown).map((reference, index) => (
        <Attachment key={reference.hash} {...{ app, reference, number: index + 1 }} />
      ))}
      {left > 0 && (
        <li>
          <button type="button" class="plain" onClick={() => setShown(shown + shownAtOnce)}>
            {t.more(left)}
          </button>
        </li>
      )}
    </ul>
  );
}

function Attachment({
  app,
  reference,
  number,
}: {
  readonly app: App;
  readonly reference: ContentReference;
  readonly number: number;
}) {
  const { kind, type } = previewKind(reference.content_type);
  const [stop, setStop] = useState<AbortController | undefined>();
  const [fault, setFault] = useState('');
  const [picture, setPicture] = useState('');
  const last = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => last.current?.abort(), []);
  useEffect(
    () => () => {
      if (picture !== '') URL.revokeObjectURL(picture);
    },
    [picture],
  );
  /** Returns the content, with a type that runs nothing; `undefined` if there is none to use. */
  const load = async (): Promise<Blob | undefined> => {
    const own = new AbortController();
    last.current = own;
    setStop(own);
    setFault('');
    try {
      const { signal } = own;
      const bytes = await app.account.attachments.download(reference, { signal });
      return new Blob([bytes as Uint8Array<ArrayBuffer>], { type });
    } catch (error) {
      if (!own.signal.aborted) setFault(loadFault(error));
      return undefined;
    } finally {
      setStop(undefined);
    }
  };
  const show = async () => {
    const content = await load();
    if (content !== undefined) setPicture(URL.createObjectURL(content));
  };
  // The name says nothing that the sender chose but one of a few types.
  const name = `attachment-${number}.${kind === 'file' ? 'bin' : (type.split('/')[1] ?? 'bin')}`;
  const save = async () => {
    const content = await load();
    if (content !== undefined) saveFile({ name, content });
  };
  const host = hostOf(reference.uri);
  return (
    <li>
      {picture !== '' && (
        <img
          src={picture}
          alt={t.picture}
          decoding="async"
          onError={() => {
            setPicture('');
            setFault(t.broken);
          }}
        />
      )}
      <span>
        {t.kinds[kind]} {number}, <small>{sizeText(reference.size)}</small>
      </span>
      {stop === undefined ? (
        <>
          {kind === 'image' && picture === '' && (
            <button type="button" class="plain" onClick={() => void show()}>
              {t.show}
            </button>
          )}
          <button type="button" class="plain" onClick={() => void save()}>
            {t.save}
          </button>
        </>
      ) : (
        <>
          <progress aria-label={t.loading} />
          <button type="button" class="plain" onClick={() => stop.abort()}>
            {text.cancel}
          </button>
        </>
      )}
      {host !== location.host && <small>{t.elsewhere(host)}</small>}
      {fault !== '' && (
        <small role="alert" class="fault">
          {fault}
        </small>
      )}
    </li>
  );
}

function hostOf(uri: string): string {
  return URL.canParse(uri) ? new URL(uri).host : uri.slice(0, 100);
}

function loadFault(error: unknown): string {
  if (isClientError(error, 'verification_failed')) return t.altered;
  if (isClientError(error, 'invalid_input')) return t.tooLargeToOpen;
  return isClientError(error, 'content_gone') ? t.gone : t.failed;
}
