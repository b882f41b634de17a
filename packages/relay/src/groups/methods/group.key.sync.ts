import { badRequest, checkGroupParams } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { keyEntries, keysToSeal, readKeyMaterial, recordDelivery } from '../reading/key-page.ts';
import { readGroupPage } from '../reading/read-access.ts';

/** `group.key.sync` (05 §13.25). */
export const groupKeySync: Handler<'group.key.sync'> = async (context, call) => {
  const { limits, network } = context;
  checkGroupParams(network, 'group.key.sync', call.params);
  const { group_id: groupId, after = -1, limit = limits.groupKeyPage } = call.params;
  const groupCall = { session: call.session, groupId };
  const pageSize = Math.min(limit, limits.groupKeyPage);
  const bounds = { after, limit: pageSize, maxBytes: limits.pageBytes };
  // Marked as delivered before anything leaves: a crash in between must not forget a delivery.
  const material = await readGroupPage(context, groupCall, async (reader, tx, writer) => {
    if (after > reader.group.stored.epoch) throw badRequest('after', 'is above the current epoch');
    const found = await readKeyMaterial(tx, reader, bounds);
    return (await recordDelivery(found, reader, writer)) ? found : undefined;
  });
  call.charge({ sealedKeys: material.keys.length });
  const sealed = await call.sealKeys(keysToSeal(context, material));
  return { result: { keys: keyEntries(material, sealed), has_more: material.hasMore } };
};
