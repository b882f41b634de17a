/** Messages of a backup: what timelines and the delivery queue refer to, and the senders' signatures. */
import { type DeviceCertificate, type Network, verifyEnvelope } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import type { Reader, Row } from '../storage/types.ts';
import { type RowCheck, requireHead, requireText } from './row-check.ts';

/** Returns the checks of messages. */
export function messageChecks(network: Network): RowCheck[] {
  const verify = (row: Row, tx: Reader) => verifyReferred(network, row, tx);
  return [
    { kind: 'timelines', table: 'timeline_heads', verify: verifyHead },
    {
      kind: 'timeline records',
      table: 'timeline_records',
      verify: async (row, tx) => {
        await verifyReferred(network, row, tx);
        await verifyPlace(row, tx);
      },
    },
    { kind: 'deliveries', table: 'deliveries', verify },
  ];
}

/** Without its highest sequence, a timeline would give sequences twice (04 §17.1). */
async function verifyHead({ account = null, head }: Row, tx: Reader): Promise<void> {
  await requireHead(tx, Number(head), [
    'SELECT MAX(sequence) AS highest FROM timeline_records WHERE account = ?',
    account,
  ]);
}

/** A record's timeline has a head, and each device that reads the record its box. */
async function verifyPlace(
  { account = null, sequence = null, visible_to }: Row,
  tx: Reader,
): Promise<void> {
  await requireText(tx, 'the head of its timeline', [
    "SELECT '' AS text FROM timeline_heads WHERE account = ?",
    account,
  ]);
  for (const deviceId of String(visible_to).split(' ')) {
    await requireText(tx, `the box of ${deviceId}`, [
      'SELECT key_box AS text FROM timeline_boxes WHERE account = ? AND device_id = ? AND sequence = ?',
      account,
      deviceId,
      sequence,
    ]);
  }
}

async function verifyReferred(
  network: Network,
  { envelope_id: envelopeId = null, certificate_id: certificateId = null }: Row,
  tx: Reader,
): Promise<void> {
  const envelope = await requireText(tx, 'its envelope', [
    'SELECT envelope AS text FROM message_envelopes WHERE envelope_id = ?',
    envelopeId,
  ]);
  const certificate = await requireText(tx, "its sender's certificate", [
    'SELECT certificate AS text FROM message_certificates WHERE certificate_id = ?',
    certificateId,
  ]);
  const signer = parseJson(certificate) as unknown as DeviceCertificate;
  verifyEnvelope(network, parseJson(envelope), signer);
}
