/** Groups and channels: one part, loaded after the start. */
export { ChannelScreen } from './channels/channel-screen.tsx';
export { channelSource } from './channels/channel-source.tsx';
export { NewChannel } from './channels/new-channel.tsx';
export { PostScreen } from './channels/post-screen.tsx';
export { ReadAsVisitor } from './channels/visitor.tsx';
export { GroupScreen } from './groups/group-screen.tsx';
export { groupSource } from './groups/group-source.tsx';
export { NewGroup } from './groups/new-group.tsx';
export { Rooms } from './groups/rooms.tsx';
export { SharedLinkScreen } from './groups/shared-link.tsx';
