import { ProtocolError } from '@posthouse/protocol';
import { JsonError } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import { callFailed } from '../observability/events.ts';
import { CallLog } from './call-log.ts';

/** A refusal of another relay that the caller receives as it came: no fault of this relay. */
export class ForwardedError extends ProtocolError {}

/**
 * Returns a text of another relay as it is stored, logged and sent on: at most `limit` characters,
 * well-formed, without U+0000, which no engine stores.
 */
export function limitedText(text: string, limit: number): string {
  return text.slice(0, limit).toWellFormed().replaceAll('\u0000', '\ufffd');
}

/**
 * Returns the error that a caller receives for what a call threw. An unknown exception is logged
 * under the ID of the call, and the caller gets no more than that.
 */
export function refusalOf(
  context: RelayContext,
  method: string,
  error: unknown,
  call?: CallLog,
): ProtocolError {
  if (error instanceof ForwardedError) return error;
  if (error instanceof ProtocolError && error.code !== 'internal_error') return error;
  if (error instanceof JsonError) return new ProtocolError('bad_request', error.message);
  const { id, log } = call ?? new CallLog(context, {});
  callFailed({ metrics: context.metrics, log }, { method, id, error });
  return new ProtocolError('internal_error', `internal error ${id}`);
}
