/** A worker that opens the account's store, hands back what a group's host lost, and ends. */
import { Client, ClientError, isClientError, webTransport } from '@posthouse/client';
import { handBackGroup } from '@posthouse/client/hand-back';
import { IndexedDbStore, webPrimitives } from '@posthouse/client/web';
import { Network, type RegistryNodes, staticRegistry } from '@posthouse/protocol';
import type { HandBackReply, HandBackRequest } from './hand-back.ts';

addEventListener('message', ({ data }) => {
  handBack(data as HandBackRequest).then(
    (count) => reply({ count }),
    (error: unknown) => reply({ error: plain(error) }),
  );
});

function reply(message: HandBackReply): void {
  postMessage(message);
}

function plain(error: unknown): unknown {
  if (error instanceof ClientError) return error.toJSON();
  return isClientError(error) ? error : { message: String(error) };
}

async function handBack({ context, word, registry, groupId }: HandBackRequest): Promise<number> {
  const primitives = webPrimitives;
  const network = new Network({ context, primitives, ...(word !== undefined && { word }) });
  await using store = await IndexedDbStore.open();
  await using client = await Client.open({
    ...{ network, store, transport: webTransport },
    registry: Object.hasOwn(registry, 'nodes')
      ? (registry as RegistryNodes)
      : staticRegistry(network, registry),
  });
  return await handBackGroup(await client.account(), groupId);
}
