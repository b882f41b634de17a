/** Events of the chain as they came, at the group's owner: its host may lose them (05 §5.6). */
import type { DeviceCertificate, GroupEvent, GroupSigners } from '@posthouse/protocol';
import { Collection } from '../../store/collection.ts';
import type { StoreReader, StoreWriter } from '../../store/index.ts';
import { keyOf } from '../../store/row-keys.ts';

/** A management event, with the certificate of its signer. */
export interface ChainProof {
  readonly event: GroupEvent;
  /** Absent for a rotation that the host made. */
  readonly certificate?: DeviceCertificate | undefined;
}

const proofs = new Collection<ChainProof>('group-proofs');

export async function keepProof(
  tx: StoreWriter,
  groupId: string,
  { event, signers }: { readonly event: GroupEvent; readonly signers: GroupSigners },
): Promise<void> {
  const certificate = signers.get(event.signer_device_id ?? '');
  await proofs.put(tx, keyOf(groupId, event.sequence), { event, certificate });
}

/** Reads the proof of the change at a sequence, if this device read it as the owner's. */
export async function chainProof(
  tx: StoreReader,
  groupId: string,
  sequence: number,
): Promise<ChainProof | undefined> {
  return await proofs.get(tx, keyOf(groupId, sequence));
}
