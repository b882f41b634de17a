/** Files that messages carry: sealed when they are sent, checked when they are fetched. */
import { readFile, writeFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { type ContentReference, parseMediaType } from '@posthouse/protocol';
import type { Command } from 'commander';
import { NodeTransport } from '../../connect/node-transport.ts';
import type { AccountSession, CliEnvironment } from '../client-session.ts';
import { UsageError } from '../exit.ts';
import { messageShape } from '../json-shapes.ts';
import { readText } from '../settings.ts';
import { onAccount, withOptions } from './context.ts';

/** Media types by the ending of a file's name; all others are bytes. */
const typesByEnding: Readonly<Record<string, string>> = {
  ...{ '.avif': 'image/avif', '.gif': 'image/gif', '.jpg': 'image/jpeg', '.jpeg': 'image/jpeg' },
  ...{ '.png': 'image/png', '.webp': 'image/webp', '.svg': 'image/svg+xml' },
  ...{ '.mp3': 'audio/mpeg', '.ogg': 'audio/ogg', '.wav': 'audio/wav', '.flac': 'audio/flac' },
  ...{ '.mp4': 'video/mp4', '.webm': 'video/webm', '.pdf': 'application/pdf' },
  ...{ '.txt': 'text/plain', '.md': 'text/markdown', '.json': 'application/json' },
  ...{ '.zip': 'application/zip' },
};

const unknownType = 'application/octet-stream';

/**
 * Encrypts files and uploads them to the home relay.
 * @throws UsageError for a file that cannot be read; ClientError
 */
export async function sealFiles(
  { account, signal }: AccountSession,
  paths: readonly string[],
): Promise<ContentReference[]> {
  const sealed: ContentReference[] = [];
  for (const path of paths) {
    const content = await readFile(path).catch((error: Error) => {
      throw new UsageError(`--file: ${error.message}`);
    });
    const contentType = typesByEnding[extname(path).toLowerCase()] ?? unknownType;
    sealed.push(await account.attachments.seal(content, { contentType, signal }));
  }
  return sealed;
}

export function fetchCommand(base: Command, environment: CliEnvironment): Command {
  const command = withOptions(base).option('--to <folder>', 'where to write the files', '.');
  return onAccount<{ to: string }>(command, environment, async (session, { options, args }) => {
    const { account, out, signal } = session;
    const [messageId = ''] = args;
    const messages = await account.messages.list();
    const found = messages.filter((message) => message.messageId === messageId);
    const attachments = found.flatMap(
      (message) => messageShape(message, account.id).attachments ?? [],
    );
    if (attachments.length === 0) {
      throw new UsageError(
        `no message ${messageId} with files is stored: see courier inbox --json`,
      );
    }
    using transport = transportToHosts(session);
    const files: string[] = [];
    for (const [index, reference] of attachments.entries()) {
      const content = await account.attachments.download(reference, { transport, signal });
      const name = `${messageId}-${index + 1}${endingOf(reference)}`;
      const path = join(options.to, name);
      await writeFile(path, content, { flag: 'wx', mode: 0o600 }).catch((error: Error) => {
        throw new UsageError(`--to: ${error.message}`);
      });
      files.push(path);
    }
    out.result({ files }, () => files);
  });
}

/** Files are at relays, which may have a private authority, or at any other host. */
function transportToHosts({ settings }: AccountSession): NodeTransport {
  if (settings.ca === undefined) return new NodeTransport();
  return new NodeTransport({ ca: [readText(settings.ca), ...rootCertificates].join('\n') });
}

/** The ending for a known type; the name of a file is none of the sender's choice. */
function endingOf({ content_type }: ContentReference): string {
  const essence = parseMediaType(content_type)?.essence;
  const [ending] = Object.entries(typesByEnding).find(([, type]) => type === essence) ?? ['.bin'];
  return ending;
}
