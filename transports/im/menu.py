"""The commands that a platform's menu offers, with their lines. Pure."""

from __future__ import annotations

from transports.im.platform import MenuEntry

_MENU: tuple[tuple[str, str, str], ...] = (
    ("pickup", "go on here with a conversation that was handed over", "用接力码在这里继续对话"),
    ("stop", "stop the running turn and what waits here", "停止当前任务和排队的消息"),
    ("status", "workspace, agent, session, what is going on", "工作区、代理、会话与当前状态"),
    ("new", "a new conversation in the same workspace", "在同一工作区开始新对话"),
    ("handover", "a code that moves this conversation elsewhere", "生成接力码,把对话转到别处"),
    ("session", "list the sessions, or go on in one", "列出会话或切换会话"),
    ("workspace", "list the workspaces, or go to one", "列出工作区或切换工作区"),
    ("agent", "list the agents, or change the agent", "列出代理或更换代理"),
    ("mode", "list the agent's modes, or set one", "列出或设置代理的模式"),
    ("profile", "list the profiles, or change it", "列出或更换配置"),
    ("close", "leave this conversation", "离开当前对话"),
    ("help", "all commands", "所有命令"),
)


def entries(language: str) -> list[MenuEntry]:
    """The menu in Chinese for "zh", else in English; the most used first."""
    return [MenuEntry(name, chinese if language == "zh" else english) for name, english, chinese in _MENU]
