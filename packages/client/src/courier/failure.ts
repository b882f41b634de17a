/** How a failure is printed. */
import { WalletError } from '@posthouse/protocol';
import { ClientError, RelayMisbehaviour, RelayRefused } from '../errors.ts';
import { type ExitName, exitCodes, UsageError } from './exit.ts';

const byClientCode: Readonly<Record<ClientError['code'], ExitName>> = {
  relay_unreachable: 'unreachable',
  no_relay: 'unreachable',
  relay_refused: 'refused',
  relay_misbehaviour: 'unverified',
  verification_failed: 'unverified',
  wrong_device: 'unverified',
  device_removed: 'unverified',
  contacts_unreached: 'noWay',
  content_gone: 'noWay',
  not_set_up: 'notSetUp',
  already_set_up: 'notSetUp',
  store_mismatch: 'store',
  store_full: 'store',
  store_unavailable: 'store',
  store_damaged: 'store',
  account_key_required: 'key',
  no_recipient_device: 'noWay',
  not_a_contact: 'noWay',
  not_a_member: 'noWay',
  not_permitted: 'noWay',
  group_blocked: 'unverified',
  group_behind: 'unreachable',
  group_key_missing: 'noWay',
  unknown_channel: 'noWay',
  move_conflict: 'noWay',
  registration_refused: 'noWay',
  counter_exhausted: 'internal',
  part_unavailable: 'internal',
  invalid_input: 'usage',
  already_sent: 'refused',
  cancelled: 'refused',
  passkey_unavailable: 'key',
  passkey_unsuitable: 'key',
  passkey_refused: 'key',
  passkey_exists: 'key',
  passkey_wrong_site: 'key',
  passkey_mismatch: 'key',
};

/** What people of the command are told where the SDK's own sentence names its calls. */
const courierWords: Partial<Record<ClientError['code'], string>> = {
  account_key_required:
    'this needs the account key, which is not stored: give it with --wallet or --key-file',
};

/** A failure as it is printed: exit status, stable code, sentence. */
export interface Failure {
  readonly exit: number;
  readonly code: string;
  readonly message: string;
  /** The relay's error code, or the rule it broke. */
  readonly reason?: string;
  /** What was to be sent is stored, and a later command sends it: to repeat it would send it twice. */
  readonly kept?: true;
}

/** Returns exit status, code and message of an error. */
export function failureOf(error: unknown): Failure {
  if (error instanceof UsageError) {
    return { exit: exitCodes.usage.code, code: 'usage', message: error.message };
  }
  if (error instanceof WalletError) {
    return { exit: exitCodes.key.code, code: `wallet_${error.fault}`, message: error.message };
  }
  if (error instanceof ClientError) {
    const exit = exitCodes[byClientCode[error.code]].code;
    const kept = error.kept === true && { kept: true as const };
    const message = courierWords[error.code] ?? withCause(error);
    const failure = { exit, code: error.code, message, ...kept };
    if (error instanceof RelayRefused) return { ...failure, reason: error.error };
    if (error instanceof RelayMisbehaviour) return { ...failure, reason: error.reason };
    return failure;
  }
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { exit: exitCodes.internal.code, code: 'internal', message };
}

/** Appends the cause's message: some failures give their reason only there. */
function withCause({ message, cause }: ClientError): string {
  return cause instanceof ClientError ? `${message} (${cause.message})` : message;
}
