#!/bin/bash
if true; then echo "你好 😀"
