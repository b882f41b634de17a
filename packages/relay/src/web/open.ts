import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RelayConfig } from '../config/index.ts';
import { readWebFiles, type ServedFile } from './files.ts';
import { messengerFolder } from './folder.ts';

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
>;

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
  const folder = web === true ? messengerFolder() : web.folder;
  if (folder === undefined) {
    if (dev) return undefined;
    throw new Error('web: the messenger was not built: run npm run build:web, or set web to false');
  }
  let made: { readonly text: Promise<string>; readonly at: number } | undefined;
  return {
    files: readWebFiles(folder),
    config() {
      if (made === undefined || now() - made.at >= configSeconds) {
        made = { text: configText(config, relayId), at: now() };
      }
      return made.text;
    },
  };
}

/** The registry's content is what every client of the network reads: it holds no secret. */
async function configText(config: WebConfig, relayId: string): Promise<string> {
  const { data, name, network, registration, registry, service } = config;
  const relays =
    typeof registry === 'string'
      ? JSON.parse(await readFile(registry || join(data, 'registry.json'), 'utf8'))
      : registry;
  return JSON.stringify({
    ...{ name, relayId, context: network, word: service, registry: relays },
    needsInvite: registration === 'invite',
  });
}
