import { type DeviceCertificate, deviceSignatures, ProtocolError } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import type { DeviceSession, Session } from '../sessions/session.ts';
import type { BatchWriter, Reader, SyncWriter } from '../storage/types.ts';
import { parseCertificate, requireCallingDevice, type Signer } from './devices.ts';

/** The calling device with the certificate it has now. */
export interface Caller {
  readonly account: string;
  readonly deviceId: string;
  readonly signer: Signer;
  readonly certificate: DeviceCertificate;
}

/**
 * Reads the calling device.
 *
 * @throws ProtocolError `unauthorized` if it was removed meanwhile
 */
export async function requireCaller(
  tx: Reader,
  session: DeviceSession,
  now: number,
): Promise<Caller> {
  const { account } = session;
  const { deviceId, certificateId, certificate } = await requireCallingDevice(tx, session, now);
  return {
    account,
    deviceId,
    signer: { deviceId, certificateId, certificate },
    certificate: parseCertificate(certificate),
  };
}

/**
 * Tells in an append whether {@link requireCaller} would still read the same device and certificate.
 */
export function isStillCaller(tx: SyncWriter, caller: Caller, now: number): boolean {
  const { account, deviceId } = caller;
  const rows = tx.all<{ certificate_id: string }>(
    `SELECT certificate_id FROM devices
        WHERE account = ? AND device_id = ? AND not_before <= ? AND expires_at > ?
      UNION ALL SELECT certificate_id FROM remote_devices
        WHERE account = ? AND device_id = ? AND status = 'active' AND stale = 0 AND expires_at > ?`,
    ...[account, deviceId, now, now],
    ...[account, deviceId, now],
  );
  return rows.length === 1 && rows[0]?.certificate_id === caller.signer.certificateId;
}

/** Tells in a batch of appends of which callers, by position, {@link isStillCaller} holds. */
export async function findStillCallers(
  tx: BatchWriter,
  calls: readonly { readonly caller: Caller; readonly now: number }[],
): Promise<ReadonlySet<number>> {
  const rows = await tx.all<{ position: number; certificate_id: string }>(
    `SELECT c.position, d.certificate_id
      FROM unnest(?::text[], ?::text[], ?::bigint[]) WITH ORDINALITY
        AS c (account, device_id, now, position)
      CROSS JOIN LATERAL (
        SELECT certificate_id FROM devices
          WHERE account = c.account AND device_id = c.device_id AND not_before <= c.now
            AND expires_at > c.now
        UNION ALL SELECT certificate_id FROM remote_devices
          WHERE account = c.account AND device_id = c.device_id AND status = 'active' AND stale = 0
            AND expires_at > c.now
      ) AS d`,
    calls.map(({ caller }) => caller.account),
    calls.map(({ caller }) => caller.deviceId),
    calls.map(({ now }) => now),
  );
  const found = Map.groupBy(rows, ({ position }) => position - 1);
  const isStill = ({ caller }: { readonly caller: Caller }, position: number) => {
    const ids = found.get(position) ?? [];
    return ids.length === 1 && ids[0]?.certificate_id === caller.signer.certificateId;
  };
  return new Set(calls.flatMap((call, position) => (isStill(call, position) ? [position] : [])));
}

/**
 * Verifies the signature of an object by the calling device (05 §3.1, 06 §8.6), before any
 * transaction that depends on it. A device keeps its keys under its ID, so that a certificate
 * renewed meanwhile changes nothing.
 *
 * @throws ProtocolError `unauthorized`, `invalid_signature`
 */
export async function verifyOwnSignature(
  context: RelayContext,
  object: JsonObject & { readonly device_signature: string },
  { session, now }: { readonly session: DeviceSession; readonly now: number },
): Promise<Caller> {
  const caller = await context.storage.read((tx) => requireCaller(tx, session, now));
  await verifySignature(context, object, caller);
  return caller;
}

/**
 * As {@link verifyOwnSignature}, for a calling device that was read already.
 * @throws ProtocolError `invalid_signature`
 */
export async function verifySignature(
  { network, verifier }: RelayContext,
  object: JsonObject & { readonly device_signature: string },
  { certificate }: Caller,
): Promise<void> {
  await verifier.verify(deviceSignatures(network, object, certificate), 'device_signature');
}

/**
 * Refuses an object that declares another account than the calling one (05 §12.4, 06 §8.1); checked
 * before its signature.
 *
 * @throws ProtocolError `forbidden`
 */
export function requireOwnAccount(session: Session | undefined, account: string): void {
  if (account === session?.account) return;
  throw new ProtocolError('forbidden', 'the object speaks for another account');
}
