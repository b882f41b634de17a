export { type ChannelRange, checkChannelPageBounds } from './bounds.ts';
export {
  type ChannelContent,
  ChannelPost,
  ChannelPostDelete,
  ChannelPostEdit,
  ChannelPostReport,
  checkChannelContentSize,
  checkChannelPost,
  checkChannelPostDelete,
  checkChannelPostEdit,
  checkChannelPostReport,
  TargetSequence,
} from './content.ts';
export {
  type ChannelChange,
  ChannelClose,
  ChannelDescriptor,
  checkChannelDescriptor,
  checkChannelDescriptorSize,
  checkChannelOpen,
  checkDescriptorUpdate,
  checkInitialDescriptor,
  checkNextRevision,
  closedDescriptor,
  mayWriteChannel,
  type NewChannel,
  signChannelClose,
  signChannelDescriptor,
  signChannelUpdate,
} from './descriptor.ts';
export {
  type ChannelAnchor,
  ChannelEvent,
  ChannelPage,
  ChannelResolution,
  type VerifiedChannelEvent,
  type VerifiedChannelPage,
  verifyChannelDescriptor,
  verifyChannelPage,
  verifyChannelResolution,
} from './events.ts';
export {
  ChannelId,
  ChannelSubscription,
  checkChannelId,
  checkChannelSubscription,
  deriveChannelId,
} from './ids.ts';
export {
  type ChannelProjection,
  emptyProjection,
  newerDescriptor,
  type PostState,
  type ProjectedPost,
  postState,
  projectChannel,
  reducePost,
} from './projection.ts';
