import type { JsonObject } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import type { Call } from './call.ts';
import type { Notice } from './notice.ts';

/** What a handler answers. Notices leave only after what it wrote is durable. */
export interface HandlerResult {
  /** The response object; `null` for a method that defines none. */
  readonly result: ResultValue;
  readonly notices?: readonly Notice[];
}

/**
 * A response object. {@link JsonText} anywhere in it is stored canonical text that leaves as it
 * is, neither parsed nor written again.
 */
export type ResultValue =
  | null
  | boolean
  | number
  | string
  | JsonText
  | readonly ResultValue[]
  | { readonly [name: string]: ResultValue | undefined };

/** Canonical text of a stored protocol object. */
export class JsonText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type Handler<P = JsonObject> = (
  context: RelayContext,
  call: Call<P>,
) => Promise<HandlerResult>;

/**
 * Takes handlers with parameters of their own type. Safe because dispatch checks the parameters
 * against the schema of the method the handler stands under.
 */
export function defineHandlers(
  // biome-ignore lint/suspicious/noExplicitAny: each handler has its own parameter type
  handlers: Readonly<Record<string, Handler<any>>>,
): Readonly<Record<string, Handler>> {
  return handlers;
}
