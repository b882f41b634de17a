import { encodeBase64url } from '@posthouse/protocol';
import type { RelayConfig } from '../config/index.ts';
import { ConfigError } from '../config/index.ts';
import type { RelayContext } from '../context.ts';
import { blobsOfSeveralProcesses } from '../observability/events.ts';
import { bindFolder } from '../storage/identity.ts';
import { Blobs } from './blobs.ts';
import { BlobFolder } from './folder.ts';

export type { Blobs } from './blobs.ts';
export { blobMigrations } from './migrations.ts';
export { blobRetentionJob } from './retention-job.ts';
export { endBlobs } from './store.ts';

/**
 * Opens the folder of the relay's blobs; `undefined` if the operator offers none.
 *
 * @throws ConfigError if it is another folder than that of this relay's blobs, or cannot be written:
 *   each of several processes needs the same one
 */
export async function openBlobs(
  { blobs: { folder: path, ...terms } }: Pick<RelayConfig, 'blobs'>,
  context: RelayContext,
): Promise<Blobs | undefined> {
  if (path === '') return undefined;
  const folder = new BlobFolder(path);
  try {
    await markOnce(folder, context);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError([`blobs.folder: ${(error as Error).message}`]);
  }
  if (context.bus.isShared) blobsOfSeveralProcesses(context, path);
  return new Blobs(context, folder, terms);
}

/** The first start marks folder and database; each later one compares. */
async function markOnce(folder: BlobFolder, { random, storage }: RelayContext): Promise<void> {
  const found = await folder.open();
  const offered = found ?? encodeBase64url(random(16));
  const bound = await bindFolder(storage, offered);
  if (bound !== offered) {
    throw new ConfigError([
      `blobs.folder: expected the folder with this relay's attachments, found ${
        found === undefined ? 'an unmarked one' : "one with another relay's"
      }: mount the folder that all processes share. If it is lost, write ${bound} to the file ` +
        `posthouse-blobs in ${folder.path}`,
    ]);
  }
  if (found === undefined) await folder.mark(bound);
}
