/** Groups of a backup: their chains, up to the stored state, and each message. */
import {
  advanceGroup,
  type DeviceCertificate,
  deriveDeviceId,
  type GroupEvent,
  type GroupProjection,
  type GroupSigners,
  type Network,
  verifyDeviceCertificate,
  verifyGroupEvent,
} from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import type { Reader, Row } from '../storage/types.ts';
import { type RowCheck, requireText, wrong } from './row-check.ts';
import { verifyGroupState } from './verify-group-state.ts';

/** Management events that are read at once. */
const batch = 100;

/** Returns the checks of hosted groups. */
export function groupChecks(network: Network, relayId: string): RowCheck[] {
  return [
    {
      kind: 'groups',
      table: 'groups',
      verify: async (row, tx) => {
        const group = await verifyChain(network, { row, relayId }, tx);
        await verifyGroupState(group, row, tx);
      },
    },
    {
      kind: 'group messages',
      table: 'group_messages',
      verify: async (row, tx) => {
        const signers = await signersOf(network, [row], tx);
        verifyGroupEvent(network, eventOf(row), signers);
      },
    },
  ];
}

/** Applies every management event from the creation on, and compares the end with the stored chain. */
async function verifyChain(
  network: Network,
  { row, relayId }: { readonly row: Row; readonly relayId: string },
  tx: Reader,
): Promise<GroupProjection> {
  const groupId = String(row.group_id);
  let group: GroupProjection | undefined;
  for (let after = -1; ; ) {
    const rows = await tx.all(
      `SELECT group_id, sequence, epoch, accepted_at, signer_device_id, certificate_id, payload
        FROM group_events WHERE group_id = ? AND sequence > ? ORDER BY sequence LIMIT ${batch}`,
      groupId,
      after,
    );
    if (rows.length === 0) break;
    const signers = await signersOf(network, rows, tx);
    const from = group ?? { group_id: groupId, relay_id: relayId };
    const page = { events: rows.map(eventOf), signers, has_more: false };
    const advance = advanceGroup(network, from, page);
    if (advance.blocked !== undefined) {
      const { event, error } = advance.blocked;
      throw wrong(`event ${event.sequence}: ${error.message}`);
    }
    group = advance.group;
    after = Number(rows.at(-1)?.sequence);
  }
  if (group === undefined || group.head !== row.chain_head) {
    throw wrong('its events do not lead to its stored state');
  }
  return group;
}

function eventOf({ sequence, epoch, accepted_at, signer_device_id, payload }: Row): GroupEvent {
  const signer = signer_device_id === null ? {} : { signer_device_id };
  const event = { sequence, epoch, accepted_at, ...signer, payload: parseJson(String(payload)) };
  return event as unknown as GroupEvent;
}

/** Reads and verifies the certificates of the signers of some rows. */
async function signersOf(
  network: Network,
  rows: readonly Row[],
  tx: Reader,
): Promise<GroupSigners> {
  const signers = new Map<string, DeviceCertificate>();
  for (const { group_id: groupId = null, certificate_id: id = null } of rows) {
    if (id === null) continue;
    const text = await requireText(tx, 'the certificate of its signer', [
      `SELECT certificate AS text FROM group_certificates
        WHERE group_id = ? AND certificate_id = ?`,
      groupId,
      id,
    ]);
    const certificate = parseJson(text) as unknown as DeviceCertificate;
    const deviceId = deriveDeviceId(network, certificate);
    if (signers.has(deviceId)) continue;
    verifyDeviceCertificate(network, certificate);
    signers.set(deviceId, certificate);
  }
  return signers;
}
