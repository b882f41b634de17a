import { BoundedMap } from '../bounded-map.ts';
import type { RelayContext } from '../context.ts';
import type { MessageKey } from './store.ts';

/** Messages that are remembered; a repeat of another one only costs one signature more. */
const mostMessages = 10_000;

/** Of each storage: what is remembered ends with it. */
const remembered = new WeakMap<object, BoundedMap<string, true>>();

/**
 * Tells whether a message under this key was accepted lately. A request with this key is
 * a repeat or a conflict then, for which the general way verifies nothing, so the short way declines
 * it first.
 */
export function wasAccepted({ storage }: Pick<RelayContext, 'storage'>, key: MessageKey): boolean {
  return remembered.get(storage)?.peek(nameOf(key)) !== undefined;
}

/** Remembers that a message was accepted. */
export function noteAccepted({ storage }: Pick<RelayContext, 'storage'>, key: MessageKey): void {
  const messages = remembered.get(storage) ?? new BoundedMap<string, true>(mostMessages);
  remembered.set(storage, messages);
  messages.set(nameOf(key), true);
}

function nameOf({ sender, messageId }: MessageKey): string {
  return `${sender} ${messageId}`;
}
