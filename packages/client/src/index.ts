import './dispose-symbols.ts';

export { Account, type AccountStatus, type FollowOptions } from './account.ts';
export {
  type DeviceApproval,
  type DeviceRequest,
  parseDeviceApproval,
  parseDeviceRequest,
} from './accounts/device-pairing.ts';
export type { DeviceInfo } from './accounts/devices.ts';
export type { MoveProgress } from './accounts/move-home.ts';
export type { MoveStep } from './accounts/move-rows.ts';
export type { MovePreview, RelayPreview } from './accounts/preview-move.ts';
export type { Attachments, DownloadRequest, SealRequest } from './api/attachments.ts';
export type { Channel, Channels } from './api/channels.ts';
export type { ContactRequestOptions, Contacts } from './api/contacts.ts';
export type { Conversations } from './api/conversations.ts';
export type { Devices } from './api/devices.ts';
export type { GroupChanges } from './api/group-administration.ts';
export type { Group, GroupDraft, Groups, NamedMember } from './api/groups.ts';
export type { Home, MoveHomeOptions, UnfinishedMove } from './api/home.ts';
export type { Draft, Messages } from './api/messages.ts';
export type { Abortable, WithAccountKey } from './api/options.ts';
export type { Profiles } from './api/profiles.ts';
export { type DownloadOptions, downloadContent } from './attachments/download.ts';
export { type PreviewKind, previewKind } from './attachments/preview-kind.ts';
export {
  type SealOptions,
  sealAttachment,
  type Uploader,
  type UploadProgress,
} from './attachments/seal-attachment.ts';
export type { ChannelSpan, FollowState } from './channels/channel-rows.ts';
export type { ChannelFacts, NewChannelFacts } from './channels/descriptors/change-channel.ts';
export type { ChannelAddress, FollowFrom } from './channels/follow-channel.ts';
export type {
  ChannelDraft,
  ChannelPatch,
  ChannelPostStatus,
  SentToChannel,
  WrittenPost,
} from './channels/posts/write-post.ts';
export type {
  ChannelChangeEntry,
  ChannelDeletionEntry,
  ChannelEntry,
  ChannelGapEntry,
  ChannelPostEntry,
  ChannelRefusedEntry,
} from './channels/timeline/channel-entry.ts';
export type { ChannelPreview } from './channels/timeline/read-channel.ts';
export { Client, type ClientOptions, type NewAccountOptions } from './client.ts';
export { defaultRetry, type RetryPolicy } from './connect/backoff.ts';
export { pinnedRegistry } from './connect/pinned-registry.ts';
export { nodePost, type RegistrySource } from './connect/registry.ts';
export type {
  HttpRequest,
  HttpResponse,
  Socket,
  SocketEvents,
  Transport,
} from './connect/transport.ts';
export type { WakeSource } from './connect/waker.ts';
export { webTransport } from './connect/web-transport.ts';
export type { Contact, ContactStatus } from './contacts/contact.ts';
export type { IssuedContactInvite } from './contacts/manage-contacts.ts';
export type { ConversationKey } from './conversations/conversation-rows.ts';
export type { Conversation } from './conversations/list-conversations.ts';
export type { ListOptions } from './conversations/list-options.ts';
export type { MessageContent } from './conversations/message-content.ts';
export { type Clock, systemClock, webRandom } from './environment.ts';
export {
  ClientError,
  type ClientErrorCode,
  isClientError,
  isRefusal,
  type MisbehaviourReason,
  type PlainError,
  type PlainRefusal,
  RelayMisbehaviour,
  RelayRefused,
  RelayUnreachable,
} from './errors.ts';
export type { AccountSnapshot, AccountState } from './events/account-state.ts';
export type {
  AccountEvent,
  ChannelAccountEvent,
  GroupAccountEvent,
  HandOverEvent,
  MessageStatusEvent,
} from './events.ts';
export type { GroupBlock, GroupMembership } from './groups/group-rows.ts';
export type { RotationOptions } from './groups/keys/rotate-secret.ts';
export type { NewGroup } from './groups/membership/create-group.ts';
export type { InviteTerms, IssuedInvite } from './groups/membership/invitations.ts';
export type { PendingApplication, PendingRecovery } from './groups/membership/requests.ts';
export type {
  GroupChange,
  GroupEntry,
  GroupMessage,
  GroupMessageRow,
  GroupRejection,
} from './groups/timeline/group-entry.ts';
export type {
  GroupMessageStatus,
  SentToGroup,
  WrittenGroupMessage,
} from './groups/timeline/post-group-message.ts';
export type { Message, MessageKey } from './messages/message.ts';
export type { RecordOutcome, SendingStatus } from './messages/message-rows.ts';
export type { HandOverOptions } from './own-devices/hand-over.ts';
export {
  MemoryStore,
  type Store,
  type StoreRange,
  type StoreReader,
  type StoreWriter,
} from './store/index.ts';
export { defaultReading, type ReadingLimits } from './sync/budget.ts';
export type { NamedDraft } from './sync/draft-outcomes.ts';
export type { WrittenMessage } from './sync/written-messages.ts';
