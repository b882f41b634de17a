import type { ResultValue } from '../dispatch/handler.ts';
import type { StoredResult } from './store.ts';

/** Makes a `DeliveryStatus` (04 section 14.1). */
export function deliveryStatus(
  result: Pick<StoredResult, 'status' | 'acceptedAt' | 'error'>,
): ResultValue {
  const { status, acceptedAt, error } = result;
  return { status, accepted_at: acceptedAt, ...(error === undefined ? {} : { error }) };
}
