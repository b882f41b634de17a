/** What the page says about the last action, and the question before one that removes something. */
import { signal } from '@preact/signals';

/** What happened last; `isFault` if it did not. */
export const notice = signal<{ readonly text: string; readonly isFault: boolean } | undefined>();

/** A question before something is removed or refused. */
interface Question {
  readonly title: string;
  readonly lines: readonly string[];
  /** What its button says. */
  readonly yes: string;
}

export const question = signal<(Question & { answer(isYes: boolean): void }) | undefined>();

/** Asks the operator. Returns whether they want it. */
export async function confirm(asked: Question): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  question.value = {
    ...asked,
    answer(isYes) {
      question.value = undefined;
      resolve(isYes);
    },
  };
  return await promise;
}

/** Does something and says what came of it: what `work` returns, or why it failed. */
export async function attempt(work: () => Promise<string | undefined>): Promise<void> {
  notice.value = undefined;
  try {
    const text = await work();
    if (text !== undefined) notice.value = { text, isFault: false };
  } catch (error) {
    notice.value = { text: sentenceOf(error), isFault: true };
  }
}

/** A failure as a sentence. */
export function sentenceOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const sentence = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}
