/** What went wrong, in plain words; the message for experts is behind "details". */
import { visibleText } from '@posthouse/client/visible-text';
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { text } from '../text/index.ts';

type Sentences = typeof import('../text/faults.ts').sentenceOf;

/** Loaded with the first fault: few people see one. */
const sentences = signal<Sentences | undefined>(undefined);

/** An error of something that is tried again by itself. */
export class TriedAgain {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/** Shows an error, or a sentence of the app as it stands. */
export function Fault({ error }: { readonly error: unknown }) {
  const isSentence = typeof error === 'string';
  useEffect(() => {
    if (isSentence || sentences.value !== undefined) return;
    // Without the part, offline for example, the message itself has to do.
    import('../text/faults.ts').then(
      ({ sentenceOf }) => {
        sentences.value = sentenceOf;
      },
      () => undefined,
    );
  }, [isSentence]);
  if (isSentence) return <span>{error}</span>;
  if (error instanceof TriedAgain) {
    return (
      <span>
        {text.tryingAgain} <Fault error={error.error} />
      </span>
    );
  }
  // A relay's words may be in it.
  const message = visibleText(messageOf(error));
  const sentence = sentences.value?.(error);
  if (sentence === undefined) return <span>{message}</span>;
  return (
    <span>
      {sentence}{' '}
      <details>
        <summary>{text.details}</summary>
        {message}
      </details>
    </span>
  );
}

/** What an error says, for experts: in English, and perhaps in a relay's words. */
export function messageOf(error: unknown): string {
  const { message = String(error) } = (error ?? {}) as { readonly message?: string };
  return message;
}
