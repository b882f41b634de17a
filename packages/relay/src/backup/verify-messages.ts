/** Messages of a backup: what timelines and the delivery queue refer to, and the senders' signatures. */
import { type DeviceCertificate, type Network, verifyEnvelope } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import type { Reader, Row } from '../storage/types.ts';
import { type RowCheck, requireText } from './row-check.ts';

/** Returns the checks of messages. */
export function messageChecks(network: Network): RowCheck[] {
  const verify = (row: Row, tx: Reader) => verifyReferred(network, row, tx);
  return [
    { kind: 'timeline records', table: 'timeline_records', verify },
    { kind: 'deliveries', table: 'deliveries', verify },
  ];
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
