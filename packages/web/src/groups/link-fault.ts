import { text } from './text.ts';

/** Returns what to say of a link that cannot be used: one sentence, whatever is wrong with it. */
export function linkFault(error: unknown): unknown {
  const { code, error: refusal } = error as { readonly code?: string; readonly error?: string };
  const isBad = code === 'verification_failed' || code === 'no_relay' || refusal === 'not_found';
  return isBad ? text.badLink : error;
}
