#!/usr/bin/env python3
"""`POST /mcp` of the daemon's HTTP door: the cases of wire.py and tasks.py by HTTP, and what is HTTP's own."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import tasks  # noqa: E402
import wire  # noqa: E402
from http_carrier import HttpCarrier, HttpConnection, message, mirrored  # noqa: E402
from mcp_client import LEGACY, MODERN, McpTestCase, modern  # noqa: E402

import suite  # noqa: E402
from daemon import eventually, notification, request  # noqa: E402


class Eras(HttpCarrier, wire.Eras):
    pass


class Lists(HttpCarrier, wire.Lists):
    pass


class Lines(HttpCarrier, wire.Lines):
    pass


class Tools(HttpCarrier, tasks.Tools):
    pass


class SideBySide(HttpCarrier, tasks.SideBySide):
    pass


class McpTasks(HttpCarrier, tasks.McpTasks):
    pass


class Subscriptions(HttpCarrier, tasks.Subscriptions):
    pass


class Resources(HttpCarrier, tasks.Resources):
    pass


if __name__ == "__main__":
    suite.main()
