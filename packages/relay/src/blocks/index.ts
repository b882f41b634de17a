import type { StoredModule } from '../dispatch/module.ts';
import { blockChangesJob, endedBlocksJob } from './jobs.ts';
import { blockMigrations } from './migrations.ts';

export { BlockList } from './block-list.ts';
export {
  type Block,
  type BlockKind,
  blockWrites,
  deleteBlock,
  readBlock,
  readBlocks,
  readBlocksOf,
} from './block-store.ts';
export {
  addBlock,
  addressToBlock,
  type BlockOptions,
  blockAccount,
  blockAddress,
  blockBriefly,
  blockChannel,
  isWide,
  type NewBlock,
  networkOf,
  unblock,
} from './change.ts';
export { isBlocked, requireUnblocked } from './rules.ts';

export const blocks: StoredModule = {
  name: 'blocks',
  migrations: blockMigrations,
  restored: [],
  handlers: {},
  jobs: [blockChangesJob, endedBlocksJob],
};
