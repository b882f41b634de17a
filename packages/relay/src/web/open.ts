import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RelayConfig } from '../config/index.ts';
import { readWebFiles, type ServedFile } from './files.ts';
import { builtFolder } from './folder.ts';

/** The messenger, as the transport serves it. */
export interface WebApp {
  readonly files: ReadonlyMap<string, ServedFile>;
  /** Returns `config.json`: which relay, and how the page finds others. JSON text. */
  config(): Promise<string>;
}

/** Seconds for which `config.json` is not made anew. */
const configSeconds = 10;

type WebConfig = Pick<
  RelayConfig,
  'data' | 'dev' | 'name' | 'network' | 'registration' | 'registry' | 'service' | 'web'
> & { readonly blobs: Pick<RelayConfig['blobs'], 'folder' | 'maxBytes'> };

/**
 * Reads the messenger, if the configuration has it served. With `dev`, a checkout in which it was not built
 * serves none.
 *
 * @param parts.now seconds of a clock that only goes forward
 * @throws Error with the cure if it is not there or is not what was built
 */
export function openWeb(
  config: WebConfig,
  { relayId, now }: { readonly relayId: string; readonly now: () => number },
): WebApp | undefined {
  const { dev, web } = config;
  if (web === false) return undefined;
  const folder = (web === true ? undefined : web.folder) ?? builtFolder('messenger');
  if (folder === undefined) {
    if (dev) return undefined;
    throw new Error('web: the messenger was not built: run npm run build:web, or set web to false');
  }
  const nodes = publicNodes(config);
  let made: { readonly text: Promise<string>; readonly at: number } | undefined;
  return {
    files: readWebFiles(folder),
    config() {
      if (made === undefined || now() - made.at >= configSeconds) {
        made = { text: configText(config, { relayId, nodes }), at: now() };
      }
      return made.text;
    },
  };
}

/**
 * Returns the nodes that pages are told; `undefined` if the registry is a file.
 *
 * @throws Error if everyone would be told a node's key, or one that only this machine can reach
 */
function publicNodes({ registry, web }: WebConfig): readonly string[] | undefined {
  if (typeof registry === 'string') return undefined;
  const given = web === true || web === false ? undefined : web.nodes;
  const nodes = given ?? registry.nodes;
  for (const node of nodes) {
    if (isPublicNode(node)) continue;
    throw new Error(
      'web: the messenger tells everyone the nodes of the chain, which may hold a key in their address or ' +
        'be on this machine: name public ones (https, no path) in web.nodes',
    );
  }
  return nodes;
}

/** Whether everyone may be told a node's address: HTTPS, without anything that can be a key. */
export function isPublicNode(node: string): boolean {
  const { protocol, pathname, search, username, password } = new URL(node);
  return protocol === 'https:' && pathname + search + username + password === '/';
}

/** A registry file is what every client of the network reads: it holds no secret. */
async function configText(
  config: WebConfig,
  { relayId, nodes }: { readonly relayId: string; readonly nodes: readonly string[] | undefined },
): Promise<string> {
  const { blobs, data, name, network, registration, registry, service } = config;
  const relays =
    typeof registry === 'string'
      ? JSON.parse(await readFile(registry || join(data, 'registry.json'), 'utf8'))
      : { ...registry, nodes };
  return JSON.stringify({
    ...{ name, relayId, context: network, word: service, registry: relays },
    needsInvite: registration === 'invite',
    attachmentBytes: blobs.folder === '' ? 0 : blobs.maxBytes,
  });
}
