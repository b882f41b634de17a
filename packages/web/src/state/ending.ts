/** Whether the relay serves this device no more: kept, because offline it is true as well. */
import { isRefusal } from '@posthouse/client/web';
import { keptSignal } from '../parts/kept-signal.ts';

/** `device_unknown`: removed or expired; `forbidden`: blocked by the operator; empty while it is served. */
export const ending = keptSignal(localStorage, 'posthouse.ending');

/** Notes an error after which no try can succeed: of a sign-in with this device (02 §10). Returns whether it is one. */
export function noteEnding(error: unknown): boolean {
  if (!isRefusal(error, 'device_unknown', 'forbidden')) return false;
  // Others are about one call, not about the device.
  if (!error.method.startsWith('auth.')) return false;
  ending.value = error.error;
  return true;
}
